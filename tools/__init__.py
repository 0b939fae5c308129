"""What the model may call, and who permits it. Imports memory."""
