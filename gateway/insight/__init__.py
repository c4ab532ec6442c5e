"""What the records say about components: contribution to a change, drift, the golden signals.

Pure: samples in, figures out. Chance comes in as a generator, samples from whoever reads records.
"""
