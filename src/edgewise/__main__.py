from edgewise.cli import main

main()
