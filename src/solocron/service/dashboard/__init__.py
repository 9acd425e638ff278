"""The handlers of the pages: what each reads from the store, and where its forms lead. `pages` says what is shown."""
