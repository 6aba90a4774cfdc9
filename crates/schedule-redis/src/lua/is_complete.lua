-- Whether the partition of the book KEYS[1] is complete.
return is_complete(KEYS[1]) and 1 or 0
