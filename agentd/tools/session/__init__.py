"""Conversations, as others see them."""
