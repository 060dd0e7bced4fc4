"""What has happened, told to others: values of the events that mutations leave in the outbox.

May import `model`. Must not know SQL, transports or receivers: the store writes the values, delivery reads them.
"""
