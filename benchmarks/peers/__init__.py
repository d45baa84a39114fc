"""Other servers that do the same thing, each a program for an interpreter of its own: we import nothing of them."""
