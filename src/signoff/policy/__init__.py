"""Rules about calls: parsed strictly, matched on values, answered with reasons. Pure, as core is."""
