"""A store that goes back, as a model of a small fleet, explored completely or by random walks."""
