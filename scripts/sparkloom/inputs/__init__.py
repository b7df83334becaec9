"""What files may say: profiles, inventories, platforms, the flags of engine releases."""
