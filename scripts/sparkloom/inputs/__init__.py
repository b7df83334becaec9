"""What files may say: `profile`, `inventory` (a `cluster`), `platform`, model `families`, `catalogs` of engines' flags.

Nothing is imported here: each command pays for the files that it reads and for no others.
"""
