"""Hand-over to a queue as a model of a small fleet with a broker, explored completely."""
