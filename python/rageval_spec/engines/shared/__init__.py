"""What engines share: the owner of what is paid, and its stand-ins in other processes."""
