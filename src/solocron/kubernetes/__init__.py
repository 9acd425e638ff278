"""Kubernetes: the Pod of a run, and the manifests that `solocron export kubernetes` prints."""
