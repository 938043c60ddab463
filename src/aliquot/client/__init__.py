"""The Python client: `Client` has one method for each operation of the API, `discovery` finds the server.

    from aliquot import client
    from aliquot.client import discovery

    with client.Client.of(discovery.find(os.environ)) as aliquot:
        print(aliquot.get_status().devices.description)

Promises: what it takes and returns are the shapes of `aliquot.wire`; what goes wrong is one of `aliquot.core.errors`.
"""

from aliquot.client import operations, terminals

Client = operations.Client
Session = terminals.Session

__all__ = ["Client", "Session"]
