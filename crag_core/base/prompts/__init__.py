"""Every prompt of a run: the wording from files, and in code what holds whatever a file says.

That is what text of others stands in and what is taken out of it, where it is cut, and the form of replies.
"""
