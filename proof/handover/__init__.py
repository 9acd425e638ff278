"""Real queues under faults: nodes and workers are killed and frozen, brokers stopped and emptied, while runs go on."""
