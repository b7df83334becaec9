"""What somebody else has set up on the rails' ports and in their subnets: read, judged, taken over with a consent."""
