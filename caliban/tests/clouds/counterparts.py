"""What the vendors' own libraries make of our requests and of the test server's answers."""

import base64
import json
import os
import sys
from urllib.parse import parse_qs


def signatures(requests):
    """Signs each request anew, at the moment it was signed, and compares."""
    import datetime

    import botocore.auth
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    same = []
    for request in requests:
        headers = dict(request["headers"])
        moment = headers["x-amz-date"]
        when = datetime.datetime.strptime(moment, "%Y%m%dT%H%M%SZ")

        class Clock(datetime.datetime):
            @classmethod
            def utcnow(cls):
                return when

            @classmethod
            def now(cls, tz=None):
                return when.replace(tzinfo=tz)

        if hasattr(botocore.auth, "get_current_datetime"):
            botocore.auth.get_current_datetime = lambda *args, **kwargs: when
        botocore.auth.datetime = type("module", (), {"datetime": Clock})
        credentials = Credentials(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            headers.get("x-amz-security-token"),
        )
        again = AWSRequest(
            method=request["method"],
            url=request["url"],
            data=request["body"].encode(),
            headers={"content-type": headers["content-type"]},
        )
        SigV4Auth(credentials, "bedrock", "us-east-1").add_auth(again)
        signature = lambda text: text.rsplit("Signature=", 1)[1]
        same.append(
            signature(again.headers["Authorization"]) == signature(headers["authorization"])
        )
    return same


def client(url):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="s",
        config=Config(retries={"max_attempts": 0}),
    )


def streams(given):
    from botocore.exceptions import EventStreamError

    bedrock = client(given["url"])
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "hi"}],
    }

    def invoke():
        answer = bedrock.invoke_model_with_response_stream(
            modelId="us.anthropic.claude-haiku-4-5-20251001-v1:0", body=json.dumps(body)
        )
        text = ""
        for event in answer["body"]:
            chunk = json.loads(event["chunk"]["bytes"])
            if chunk["type"] == "content_block_delta":
                text += chunk["delta"]["text"]
        return text

    invoked = invoke()
    answer = bedrock.converse_stream(
        modelId="us.amazon.nova-pro-v1:0",
        messages=[{"role": "user", "content": [{"text": "hi"}]}],
    )
    conversed = ""
    for event in answer["stream"]:
        conversed += event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")
    try:
        invoke()
        exception = "none"
    except EventStreamError as error:
        exception = error.response["Error"]["Code"]
    return {"invoke": invoked, "converse": conversed, "exception": exception}


def keys(given):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ["HOME"] = given["home"]
    os.environ["AWS_PROFILE"] = given["profile"]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    import botocore.session

    credentials = botocore.session.Session().get_credentials()
    return {"key": credentials.access_key}


def service_account(given):
    """Makes an account, and asks for a token with Google's own library."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account as accounts

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    file = {
        "type": "service_account",
        "client_email": "robot@my-project.iam.gserviceaccount.com",
        "private_key_id": "kid-1",
        "private_key": pem,
        "token_uri": given["token_uri"],
        "project_id": "my-project",
    }
    credentials = accounts.Credentials.from_service_account_info(
        file, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    credentials.refresh(Request())
    return {"file": file}


def compare_assertions(given):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    def parts(form):
        fields = parse_qs(form)
        assertion = fields.pop("assertion")[0]
        header, claims, signature = assertion.split(".")
        decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        key = serialization.load_pem_private_key(given["file"]["private_key"].encode(), None)
        key.public_key().verify(
            decode(signature),
            f"{header}.{claims}".encode(),
            padding.PKCS1v15(),
            hashes.SHA256(),
        )
        claims = json.loads(decode(claims))
        lasts = claims.pop("exp") - claims.pop("iat")
        return fields, json.loads(decode(header)), claims, lasts

    theirs, ours = parts(given["theirs"]), parts(given["ours"])
    if theirs != ours:
        print(theirs, ours, file=sys.stderr)
    return {"same": theirs == ours, "verified": True}


def azure(given):
    """The same conversation asked by OpenAI's own client, in the form that is wanted."""
    import openai

    body = given["body"]
    body.pop("stream")
    if given["form"] == "dated":
        client = openai.AzureOpenAI(
            azure_endpoint=given["url"],
            api_key="azure-key",
            api_version="2024-10-21",
            azure_deployment=given["deployment"],
            max_retries=0,
        )
        stream = client.chat.completions.create(stream=True, **body)
        said = "".join(
            chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices
        )
    else:
        client = openai.OpenAI(
            base_url=given["url"] + "/openai/v1/",
            api_key="azure-key",
            default_headers={"api-key": "azure-key"},
            max_retries=0,
        )
        stream = client.responses.create(stream=True, **body)
        said = "".join(
            event.delta for event in stream if event.type == "response.output_text.delta"
        )
    return {"said": said}


def token(given):
    """A token by the login that a file describes, asked for by Google's own library."""
    from google.auth import identity_pool
    from google.auth.transport.requests import Request

    credentials = identity_pool.Credentials.from_info(
        given["file"], scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    credentials.refresh(Request())
    return {"token": credentials.token}


print(json.dumps(globals()[sys.argv[1]](json.load(sys.stdin))))
