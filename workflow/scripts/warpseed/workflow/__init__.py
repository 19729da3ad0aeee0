"""What only the rules and `warpseed check` need."""
