"""Small standard transformers: does the theory score their heads?"""
