      * AN ACCOUNT WITH ITS OPENING BALANCE, 57 CHARACTERS.
       01  MASTER-RECORD.
           05  MS-ACCOUNT              PIC X(10).
           05  MS-CURRENCY             PIC X(3).
           05  MS-BALANCE              PIC S9(13)
                                       SIGN LEADING SEPARATE.
           05  MS-NAME                 PIC X(30).
