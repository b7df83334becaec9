"""An engine image with our source patches inside, as a build context, for who wants none applied at each start."""
