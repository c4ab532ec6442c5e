"""Small pure policies around each target: check the whole row, take all at once, observe once."""
