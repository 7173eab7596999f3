//! AWS event streams, written.

/// One event of a stream.
pub(crate) fn event(kind: &str, payload: &[u8]) -> Vec<u8> {
    message(
        &[
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ],
        payload,
    )
}

/// What ends a stream that fails.
pub(crate) fn exception(kind: &str, payload: &[u8]) -> Vec<u8> {
    message(
        &[
            (":exception-type", kind),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        ],
        payload,
    )
}

fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    const STRING: u8 = 7;
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.extend_from_slice(name.as_bytes());
        head.push(STRING);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(&length(16 + head.len() + payload.len()));
    out.extend_from_slice(&length(head.len()));
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write;

        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    /// As AWS's own client reads it.
    #[test]
    fn messages_are_written_as_the_vendor_reads_them() {
        assert_eq!(
            hex(&event("chunk", br#"{"bytes":"eyJ0eXBlIjoicGluZyJ9"}"#)),
            "0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279746573223a2265794a306558426c496a6f6963476c755a794a39227da01f56c4"
        );
        assert_eq!(
            hex(&exception(
                "throttlingException",
                br#"{"message":"Too many requests"}"#
            )),
            "00000090000000618e91a9b70f3a657863657074696f6e2d747970650700137468726f74746c696e67457863657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74797065070009657863657074696f6e7b226d657373616765223a22546f6f206d616e79207265717565737473227de67f8005"
        );
    }
}
