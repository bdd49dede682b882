"""The reference servers of the protocol. They are not ours, so these tests run where they are
installed: `HOLDFAST_MCP_SERVERS` names the folder."""
