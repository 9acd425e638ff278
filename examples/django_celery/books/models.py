"""A row that a job has written."""

from django.db import models


class Closing(models.Model):
    """The books were closed for a slot; two of one slot would be a bug."""

    slot = models.CharField(max_length=40)
    worker = models.IntegerField()
