"""Engine images as build contexts: one with our source patches inside, and llama.cpp's, built with RPC for SM121."""
