"""A program as users write it: the same module in nodes and in the Pods of its runs."""

from __future__ import annotations

from books import keep_books

from solocron.carriers.kubernetes import KubernetesCarrier

scheduler = keep_books(KubernetesCarrier("kubernetes_shop:scheduler", image="shop:7", secret="shop"))
