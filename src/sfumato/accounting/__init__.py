"""What events cost. One file per notion; every number is exact or rounded in the safe direction."""
