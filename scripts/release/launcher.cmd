@"%~dp0node.exe" "%~dp0app\bin\fairlead.js" %*
