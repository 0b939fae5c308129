"""The tools that a model may call, and the policy that permits them. Imports memory."""
