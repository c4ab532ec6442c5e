      * A REPLY, 200 CHARACTERS.
       01  WS-REPLY.
           05  RP-FUNCTION             PIC X(8).
           05  RP-STATUS               PIC X(2).
           05  RP-MESSAGE              PIC X(30).
           05  RP-ACCOUNT              PIC X(10).
           05  RP-OTHER                PIC X(10).
           05  RP-CURRENCY             PIC X(3).
           05  RP-AMOUNT               PIC 9(13).
           05  RP-FEE                  PIC 9(13).
           05  RP-BALANCE              PIC S9(13)
                                       SIGN LEADING SEPARATE.
           05  RP-OTHER-BALANCE        PIC S9(13)
                                       SIGN LEADING SEPARATE.
           05  RP-SEQUENCE             PIC 9(9).
           05  RP-REFERENCE            PIC X(32).
           05  RP-TEXT                 PIC X(32).
           05  FILLER                  PIC X(10) VALUE SPACES.
