"""What the studio changes in django-allauth: sign-in, sign-up, rate limits, mail.

Pages of the studio itself are the modules beside this folder.
"""
