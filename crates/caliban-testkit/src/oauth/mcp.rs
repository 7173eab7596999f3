//! The smallest MCP server there can be over streamable HTTP: one tool, no session, no stream.

use serde_json::{Value, json};

use super::routes::Reply;

pub(super) fn answer(body: &[u8]) -> Reply {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return Reply::json(400, &json!({"error": "not JSON"}));
    };
    let Some(id) = message.get("id") else {
        return Reply::empty(202);
    };
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        Some("ping") => json!({}),
        Some("tools/list") => json!({"tools": [{
            "name": "whoami",
            "description": "Says that you are in.",
            "inputSchema": {"type": "object", "properties": {}},
        }]}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "you are in"}]}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Reply::json(200, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Reply::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
