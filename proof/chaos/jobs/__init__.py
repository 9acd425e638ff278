"""What the fleets of the chaos runs carry out."""
