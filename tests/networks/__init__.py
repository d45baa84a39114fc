"""Bad networks of the tests' own: what a call keeps when datagrams are lost, late, swapped, doubled, or gone."""
