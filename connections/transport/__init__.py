"""Messages in and out of this installation: above the protocols, whose handlers it calls.

inbox           receive: store, find the connection, handle, report what is refused
request_turns   requests to connect, one at a time for each organization
delivery        deliver: to peers hosted here within the call, to others by HTTP
posting_queue   the shares of endpoints and organizations in the worker's calls
return_route    answers in the response to the peer's own request
completion      what a delivered message completes
"""
