//! MCP client on the official SDK: the servers people already run become tools of an agent. No
//! type of the SDK leaves this crate.
