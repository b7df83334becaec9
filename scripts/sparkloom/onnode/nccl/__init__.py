"""What NCCL's log says of the transport between ranks."""
