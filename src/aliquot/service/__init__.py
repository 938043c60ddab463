"""The use cases. They await, and touch the world only through the ports in `aliquot.service.ports`."""
