"""What a value is: types, schemas with field ids, single values as bytes, transforms, Arrow. Pure."""
