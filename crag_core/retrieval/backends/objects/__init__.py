"""An index in an object store that several machines share."""
