"""Drop-ins: other libraries' names, arguments, states and outputs on Clebsch's operations, one package for each library."""
