"""From a finding to new text: edits that touch nothing else, kept only where they help."""
