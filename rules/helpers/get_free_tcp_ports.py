import socket


def get_free_tcp_ports(n=1):
    """Return ``n`` TCP ports that nothing listened on a moment ago."""
    ports = []
    for _ in range(n):
        with socket.socket() as probe:
            probe.bind(("", 0))
            ports.append(probe.getsockname()[1])
    return ports
