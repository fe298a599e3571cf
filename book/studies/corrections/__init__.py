"""How wrong is the saddle point at width N?"""
