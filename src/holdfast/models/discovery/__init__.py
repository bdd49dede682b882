"""Which model servers are there, and what they have loaded: asked once, within a given time.

This runs when a program starts. So it keeps to the time it is given whatever the servers do, and
takes long neither to import nor to ask. What is known of a model without its server is in
`catalog`; asking a model for a reply is left to `chat`.

Read `offers` first: it is what comes back. `places` says who is asked, `asking` how it goes, `kinds`
what the servers tell of themselves, and `http` has the little HTTP that this needs.
"""

from holdfast.models.discovery.asking import discover, look
from holdfast.models.discovery.offers import Found, Kind, Look, Offered, Server, Silent
from holdfast.models.discovery.places import DEFAULT

__all__ = ["DEFAULT", "Found", "Kind", "Look", "Offered", "Server", "Silent", "discover", "look"]
