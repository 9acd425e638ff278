"""Three workers, each a node: python -m examples.invoices [PORT]"""

import sys

import uvicorn

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run("examples.invoices.app:app", port=port, workers=3, log_level="warning")
