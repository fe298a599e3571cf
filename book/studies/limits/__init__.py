"""Where does the theory break?"""
