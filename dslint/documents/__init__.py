"""Reading: a file becomes a document, with a place for everything in it."""
