"""Facts about scripts, by subject; script_table.py names them."""
