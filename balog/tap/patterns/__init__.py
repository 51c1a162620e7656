"""How taps ask sources: by windows of time, page by page, all and then in order, one account after another."""
