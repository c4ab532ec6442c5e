      * A TRANSFER AS MADE, 160 CHARACTERS WITH ITS LINE END.
       01  JOURNAL-RECORD.
           05  JR-SEQUENCE             PIC 9(9).
           05  JR-REFERENCE            PIC X(32).
           05  JR-DEBIT                PIC X(10).
           05  JR-CREDIT               PIC X(10).
           05  JR-CURRENCY             PIC X(3).
           05  JR-AMOUNT               PIC 9(13).
           05  JR-DEBIT-BALANCE        PIC S9(13)
                                       SIGN LEADING SEPARATE.
           05  JR-CREDIT-BALANCE       PIC S9(13)
                                       SIGN LEADING SEPARATE.
           05  JR-TEXT                 PIC X(32).
           05  JR-TIME                 PIC X(14).
           05  FILLER                  PIC X(7).
           05  JR-END-MARK             PIC X(1).
           05  JR-NEW-LINE             PIC X(1).
