"""What every room stands on: errors, estimates, numbers, arguments, parallel work, files, stores."""
